/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the steps of a pass share: the maps, the record that is being made, and
 * reads of fields into its words.
 */
#ifndef SLABCTL_SNAPSHOT_WORK_H
#define SLABCTL_SNAPSHOT_WORK_H

const volatile u32 possible_nodes = 1;
const volatile u64 page_size = 4096;
/* For `list`: the address of slab_caches; 0 where it is not needed. */
const volatile u64 slab_caches = 0;

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, SETTINGS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} settings SEC(".maps");

struct cache_record {
	u64 w[CACHE_WORDS];
	/* Not written; here since the stack is small. */
	u64 missing;		   /* bits of CACHE_KNOWN: a part of these could not be read */
	u64 cpu_slab, cpu_sheaves; /* per-CPU pointers, 0 for none */
	u64 number, offset, random, name; /* its place in the order of caches, and fields */
	u64 partial, slabs, full;	   /* counts of all nodes, when everything was looked at */
};
/* One is enough: a snapshot is read by one reader. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct cache_record);
} record SEC(".maps");

/* A node or a processor while it is looked at; the stack is for the calls. */
struct part_record {
	u64 w[NODE_WORDS];
};
_Static_assert((int)CPU_WORDS <= (int)NODE_WORDS, "part_record");
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct part_record);
} part_record SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 4096); /* larger for `list`, set at load */
} stream SEC(".maps");

/* What the steps of one cache share. */
struct work {
	struct cache_record *out;
	struct seq_file *seq;
	u64 cache, limit, parts;
	u64 *left;		/* slabs and free objects that may yet be looked at */
};

static u64 setting(u32 which)
{
	u64 *value = bpf_map_lookup_elem(&settings, &which);
	return value ? *value : 0;
}

/* The number by way of a word of a map: the verifier follows each step that leads
 * to a number on the stack when that is compared, and forgets what went through here. */
static always_inline u64 forget(u64 *word, u64 number)
{
	*(volatile u64 *)word = number;
	return *(volatile u64 *)word;
}

static always_inline void spend(struct work *work, u64 looked_at)
{
	*work->left -= looked_at < *work->left ? looked_at : *work->left;
}

static noinline int count_one(u32 which)
{
	u64 *count = bpf_map_lookup_elem(&settings, &which);

	if (count)
		++*count;
	return 0;
}

static always_inline void emit(struct seq_file *seq, void *words, u32 bytes)
{
	/* Without room the kernel comes back to this cache with the next read. */
	if (seq)
		bpf_seq_write(seq, words, bytes);
	else if (bpf_ringbuf_output(&stream, words, bytes, 0))
		count_one(SETTING_LOST);
}

#define HEAD(kind, words) ((kind) | (u64)(words) << 32)

/* An empty part. */
static always_inline u64 *new_part(u64 head, u64 number)
{
	u32 zero = 0;
	struct part_record *part = bpf_map_lookup_elem(&part_record, &zero);

	if (!part)
		return 0;
	__builtin_memset(part, 0, sizeof(*part));
	part->w[0] = head;
	part->w[2] = number;
	return part->w;
}
_Static_assert(NODE_NUMBER == 2 && CPU_NUMBER == 2, "new_part");

#define BIT(n) (1ull << (n))
/* Word n of a record becomes the field, if it can be read. */
#define TAKE(words, n, field)                       \
	do {                                        \
		if (!READ(&(words)[n], field))      \
			(words)[KNOWN] |= BIT(n);   \
	} while (0)
/* The same of a field that the kernel may lack, with its OPTIONAL reader. */
#define TAKE_IF(words, n, field, reader, from)                        \
	do {                                                          \
		if (HAS(field) && !reader(from, &(words)[n]))         \
			(words)[KNOWN] |= BIT(n);                     \
	} while (0)
enum { KNOWN = CACHE_KNOWN };
#define BARN_FIGURES (BIT(CACHE_BARN_FULL) | BIT(CACHE_BARN_EMPTY) | BIT(CACHE_BARN_OBJECTS))
#define WALK_FIGURES (BIT(CACHE_WALKED) | BIT(CACHE_WALKED_OBJECTS) | BIT(CACHE_WALKED_INUSE))
#define NODE_FIGURES (BIT(CACHE_PARTIAL) | BIT(CACHE_SLABS) | BIT(CACHE_TOTAL_OBJECTS) | WALK_FIGURES)
#define CPU_FIGURES                                                                                  \
	(BIT(CACHE_CPU_SLABS) | BIT(CACHE_CPU_FREE) | BIT(CACHE_CPU_PARTIAL_SLABS) |                 \
	 BIT(CACHE_CPU_PARTIAL_FREE) | BIT(CACHE_SHEAF_OBJECTS) | BIT(CACHE_RCU_OBJECTS))
_Static_assert(CACHE_KNOWN == 1 && NODE_KNOWN == 1 && CPU_KNOWN == 1, "TAKE");

OPTIONAL(read_usersize, kmem_cache, usersize)
OPTIONAL(read_cpu_partial, kmem_cache, cpu_partial)
OPTIONAL(read_sheaf_capacity, kmem_cache, sheaf_capacity)
OPTIONAL(read_defrag_ratio, kmem_cache, remote_node_defrag_ratio)
OPTIONAL(read_random, kmem_cache, random)
OPTIONAL(read_cpu_slab, kmem_cache, cpu_slab)
OPTIONAL(read_cpu_sheaves, kmem_cache, cpu_sheaves)
OPTIONAL(read_slabs, kmem_cache_node, nr_slabs.counter)
OPTIONAL(read_total_objects, kmem_cache_node, total_objects.counter)
OPTIONAL(read_barn, kmem_cache_node, barn)
OPTIONAL(read_next, slab, next)

static noinline long read_full(u64 at, u64 *to)
{
	struct node_barn *barn = (void *)at;

	return READ(to, barn->nr_full);
}

#endif
