/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All slab caches in one pass: sizes, limits, lists, and what is parked near
 * processors. Nothing is locked and nothing is changed; what moves meanwhile is
 * noticed where it can be, and marked.
 *
 * Two programs give the same records: `caches` is the kernel's iterator of
 * caches (6.13 and later), which writes to the file that is read; `list` walks
 * slab_caches at the first step of another iterator, and writes to a ring.
 */
#include "bpf.h"
#include "kernel.h"
#include "percpu.h"
#include "snapshot.h"

char terms[] SEC("license") = "Dual BSD/GPL";

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

/*
 * The free list of a slab in a processor's hand is counted object by object,
 * which is most of the time that a pass takes. Every operation of the processor
 * gives the cache another `tid` there: as long as it is the same, so is the list.
 */
struct hand_known {
	u64 at, tid, freelist, slab, random, name, free;
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1); /* of each cache one for each processor, set at load */
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct hand_known);
} hands SEC(".maps");

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

/* ---- one slab */
struct slab_view {
	u64 cache, next, previous, freelist, inuse, objects;
};

/* One read: there are thousands of slabs. */
static noinline int look_at_slab(u64 at, struct slab_view *view)
{
	u64 words[5];
	char *base = (char *)words;
	struct slab *slab = (void *)at;
	u64 cache = OFFSET(slab->slab_cache), list = OFFSET(slab->slab_list);
	u64 freelist = OFFSET(slab->freelist), unit = OFFSET(slab->inuse);
	/* These five words are side by side in all kernels, behind the flags. */
	u64 first = cache < list ? cache : list;

	cache -= first, list -= first, freelist -= first, unit -= first;
	if (cache > 32 || list > 24 || freelist > 32 || unit > 36)
		return 1;
	if (bpf_probe_read_kernel(words, sizeof(words), (void *)(at + first)))
		return 1;
	view->cache = *(u64 *)(base + cache);
	view->next = *(u64 *)(base + list);
	view->previous = *(u64 *)(base + list + 8);
	view->freelist = *(u64 *)(base + freelist);
	u64 counters = *(u32 *)(base + unit);
	view->inuse = BITS(slab->inuse, counters);
	view->objects = BITS(slab->objects, counters);
	return 0;
}

/* Bucket 0 is empty, 11 full, 1 to 10 are tenths. */
static always_inline void count_occupancy(u64 *buckets, u64 inuse, u64 objects)
{
	u64 bucket = 0;

	if (objects && inuse >= objects)
		bucket = 11;
	else if (objects && inuse)
		bucket = 1 + inuse * 10 / objects;
	if (bucket < 12)
		buckets[bucket]++;
}

/* ---- the partial list of a node
 * From both ends at once: the descriptors are seldom in a cache of the
 * processor, which so waits for two at a time. A list over the limit is looked at
 * half from either end, as the kernel itself does, since slabs are put at the
 * end that tells how full they are. */
enum { LEAST_WALK = 64 }; /* of each list, when there is no more to be spent */
struct walk {
	struct cache_record *out;
	u64 cache, next, previous, last, left, walked, objects, inuse, moved;
};

static always_inline int walk_slab(struct walk *walk, u64 at, struct slab_view *slab)
{
	if (slab->cache != walk->cache || slab->inuse > slab->objects) {
		walk->moved = MOVED_PARTIAL;
		return 1;
	}
	walk->walked++;
	walk->left--;
	walk->objects += slab->objects;
	walk->inuse += slab->inuse;
	count_occupancy(&walk->out->w[CACHE_OCCUPANCY], slab->inuse, slab->objects);
	if (!walk->out->w[CACHE_SAMPLE_OBJECT] && slab->freelist) {
		walk->out->w[CACHE_SAMPLE_SLAB] = at;
		walk->out->w[CACHE_SAMPLE_OBJECT] = slab->freelist;
	}
	return 0;
}

static long walk_step(u64 step, struct walk *walk)
{
	struct slab_view front, back;
	struct slab *none = 0;
	u64 first = walk->next - OFFSET(none->slab_list);
	u64 second = walk->previous - OFFSET(none->slab_list);
	u64 both = walk->left > 1;

	if (!walk->left)
		return 1;
	if (look_at_slab(first, &front) || (both && look_at_slab(second, &back))) {
		walk->moved = MOVED_PARTIAL;
		return 1;
	}
	if (walk_slab(walk, first, &front))
		return 1;
	walk->last = walk->next;
	walk->next = front.next;
	if (both) {
		if (walk_slab(walk, second, &back))
			return 1;
		walk->last = walk->previous;
		walk->previous = back.previous;
	}
	return 0;
}

static noinline int walk_list(struct kmem_cache_node *node, u64 listed, u64 limit, struct walk *walk)
{
	u64 now = 0;

	/* One that came this moment is as good as one that comes the next. */
	if (!listed)
		return 0;
	if (READ(&walk->next, node->partial.next) || READ(&walk->previous, node->partial.prev))
		return 1;
	walk->left = listed < limit ? listed : limit;
	bpf_loop((walk->left + 1) / 2, walk_step, walk, 0);
	if (listed > limit) {
		walk->moved |= MOVED_CUT;
	} else {
		/* Where the two met, each is at what the other was at last. */
		u64 met = listed & 1 ? walk->previous : walk->next;
		if (met != walk->last || READ(&now, node->nr_partial) || now != listed)
			walk->moved |= MOVED_PARTIAL;
	}
	return 0;
}

/* ---- barns. The kernel keeps ten full sheaves at the most. */
enum { MOST_SHEAVES = 1024 };
struct barn_walk {
	u64 head, at, objects, sheaves, capacity;
};

static long barn_step(u64 step, struct barn_walk *walk)
{
	struct slab_sheaf *none = 0;
	u64 size = 0, next = 0;
	struct list_head *link = (void *)walk->at;

	if (walk->at == walk->head)
		return 1;
	struct slab_sheaf *sheaf = (void *)(walk->at - OFFSET(none->barn_list));
	if (READ(&size, sheaf->size) || READ(&next, link->next) || size > walk->capacity)
		return 1;
	walk->objects += size;
	walk->sheaves++;
	walk->at = next;
	return 0;
}

static noinline int look_at_barn(u64 at, struct work *work, u64 *node)
{
	struct node_barn *barn = (void *)at;
	u64 *out = work->out->w;
	struct barn_walk walk = { .capacity = out[CACHE_SHEAF_CAPACITY] };
	u64 full = 0, empty = 0;

	if (READ(&full, barn->nr_full) || READ(&empty, barn->nr_empty) || READ(&walk.at, barn->sheaves_full.next))
		return 1;
	walk.head = at + OFFSET(barn->sheaves_full);
	if (walk.at != walk.head)
		bpf_loop((full < MOST_SHEAVES ? full : MOST_SHEAVES) + 8, barn_step, &walk, 0);
	if (walk.at != walk.head || walk.sheaves != full)
		out[CACHE_MOVED] |= MOVED_BARN;
	out[CACHE_BARN_FULL] += full;
	out[CACHE_BARN_EMPTY] += empty;
	out[CACHE_BARN_OBJECTS] += walk.objects;
	out[CACHE_KNOWN] |= BARN_FIGURES;
	node[NODE_BARN_FULL] = full;
	node[NODE_BARN_EMPTY] = empty;
	node[NODE_KNOWN] |= BIT(NODE_BARN_FULL) | BIT(NODE_BARN_EMPTY);
	return 0;
}

/* ---- nodes: where a cache keeps its pointers to them */
static noinline int node_in_array(u64 cache, u32 number, u64 *node, u64 *barn)
{
	struct kmem_cache *s = (void *)cache;
	struct kmem_cache_node *none = 0;

	if (bpf_probe_read_kernel(node, 8, (void *)(cache + OFFSET(s->node) + number * 8ull)))
		return 1;
	return *node && HAS(none->barn) && read_barn((void *)*node, barn);
}

static noinline int node_in_pairs(u64 cache, u32 number, u64 *node, u64 *barn)
{
	struct kmem_cache___per_node *s = (void *)cache;
	u64 first = OFFSET(s->per_node[0]), second = OFFSET(s->per_node[1]);
	struct kmem_cache_per_node_ptrs *pair = (void *)(cache + first + number * (second - first));

	return READ(node, pair->node) || READ(barn, pair->barn);
}

static noinline int look_at_node(struct work *work, u32 number, u64 address, u64 *part)
{
	struct kmem_cache_node *node = (void *)address;
	struct walk walk = { .out = work->out, .cache = work->cache };
	u64 limit = work->limit, left = *work->left;

	TAKE(part, NODE_PARTIAL, node->nr_partial);
	TAKE_IF(part, NODE_SLABS, node->nr_slabs, read_slabs, node);
	TAKE_IF(part, NODE_TOTAL_OBJECTS, node->total_objects, read_total_objects, node);
	u64 wanted = BIT(NODE_PARTIAL) | (HAS(node->nr_slabs) ? BIT(NODE_SLABS) : 0) |
		     (HAS(node->total_objects) ? BIT(NODE_TOTAL_OBJECTS) : 0);
	if ((part[NODE_KNOWN] & wanted) != wanted)
		return 1;
	if (left < LEAST_WALK)
		left = LEAST_WALK;
	if (limit > left)
		limit = left;
	if (walk_list(node, part[NODE_PARTIAL], forget(&part[NODE_WALKED], limit), &walk))
		return 1;
	part[NODE_WALKED_OBJECTS] = walk.objects;
	part[NODE_WALKED_INUSE] = walk.inuse;
	spend(work, forget(&part[NODE_WALKED], walk.walked));
	/* The node has no mark of its own. */
	if (!walk.moved)
		part[NODE_KNOWN] |= BIT(NODE_WALKED) | BIT(NODE_WALKED_OBJECTS) | BIT(NODE_WALKED_INUSE);
	work->out->w[CACHE_MOVED] |= walk.moved;
	return 0;
}

static long node_step(u64 number, struct work *work)
{
	struct kmem_cache___per_node *pairs = 0;
	struct kmem_cache *array = 0;
	struct node_barn *barns = 0;
	u64 *part = new_part(HEAD(RECORD_NODE, NODE_WORDS), number);
	u64 node = 0, barn = 0, failed = 1;
	u64 *out = work->out->w;

	if (HAS(pairs->per_node))
		failed = node_in_pairs(work->cache, number, &node, &barn);
	else if (HAS(array->node))
		failed = node_in_array(work->cache, number, &node, &barn);
	if (failed || !part) {
		work->out->missing |= NODE_FIGURES | BARN_FIGURES;
		return 0;
	}
	if (HAS(barns->nr_full) && barn && look_at_barn(barn, work, part))
		work->out->missing |= BARN_FIGURES;
	if (!node)
		return 0;
	if (look_at_node(work, number, node, part)) {
		work->out->missing |= NODE_FIGURES;
		return 0;
	}
	out[CACHE_PARTIAL] += part[NODE_PARTIAL];
	out[CACHE_SLABS] += part[NODE_SLABS];
	out[CACHE_TOTAL_OBJECTS] += part[NODE_TOTAL_OBJECTS];
	out[CACHE_WALKED] += part[NODE_WALKED];
	out[CACHE_WALKED_OBJECTS] += part[NODE_WALKED_OBJECTS];
	out[CACHE_WALKED_INUSE] += part[NODE_WALKED_INUSE];
	/* The same fields are there, or not, for every node. */
	u64 known = part[NODE_KNOWN];
	out[CACHE_KNOWN] |= BIT(CACHE_PARTIAL) | WALK_FIGURES;
	if (known & BIT(NODE_SLABS))
		out[CACHE_KNOWN] |= BIT(CACHE_SLABS);
	if (known & BIT(NODE_TOTAL_OBJECTS))
		out[CACHE_KNOWN] |= BIT(CACHE_TOTAL_OBJECTS);
	if (work->parts & PARTS_NODES)
		emit(work->seq, part, NODE_WORDS * sizeof(u64));
	return 0;
}

/* ---- processors: the slab in hand, its free list, the partial slabs
 * What is counted when a list moves is in the sums of the cache, which are
 * marked then; the processor's own words are not known. */
struct chain {
	struct cache_record *of;
	u64 at, first, mask, broken;
	u64 *count; /* not on the stack, where the verifier would follow each step */
};

static long free_step(u64 step, struct chain *chain)
{
	u64 word = 0, place = chain->at + chain->of->offset;
	struct kmem_cache *s = 0;

	if (!chain->at)
		return 1;
	/* A list that is used meanwhile leads elsewhere: it stays within its slab. */
	if (((chain->at ^ chain->first) & chain->mask) || bpf_probe_read_kernel(&word, 8, (void *)place)) {
		chain->broken = 1;
		return 1;
	}
	++*chain->count;
	if (HAS(s->random))
		word ^= chain->of->random ^ __builtin_bswap64(place);
	chain->at = word;
	return 0;
}

static noinline int count_free(struct work *work, u64 freelist, u64 objects, u64 *count)
{
	struct chain chain = {
		.at = freelist,
		.first = freelist,
		.of = work->out,
		.count = count,
	};
	u64 order = work->out->w[CACHE_ORDER_OBJECTS] >> 16;

	if (!freelist)
		return 0;
	if (order > 20)
		return 1;
	chain.mask = ~((page_size << order) - 1);
	bpf_loop(objects + 1, free_step, &chain, 0);
	spend(work, *count);
	return chain.broken || chain.at;
}

struct hand_view {
	u64 freelist, tid, slab;
};

static noinline int read_hand(u64 at, struct hand_view *view)
{
	u64 words[4];
	char *base = (char *)words;
	struct kmem_cache_cpu *cpu = (void *)at;
	u64 freelist = OFFSET(cpu->freelist), tid = OFFSET(cpu->tid), slab = OFFSET(cpu->slab);

	if (freelist > 24 || tid > 24 || slab > 24)
		return 1;
	if (bpf_probe_read_kernel(words, sizeof(words), cpu))
		return 1;
	view->freelist = *(u64 *)(base + freelist);
	view->tid = *(u64 *)(base + tid);
	view->slab = *(u64 *)(base + slab);
	return 0;
}

/* What is known of a hand that is as it was, or where it is to be kept. */
static always_inline struct hand_known *hand_of(struct work *work, u32 cpu)
{
	u64 key = work->out->number * possible_cpus + cpu;
	u32 index = key;

	return key <= ~0u ? bpf_map_lookup_elem(&hands, &index) : 0;
}

static always_inline int is_known(struct hand_known *hand, struct work *work, u64 at, struct hand_view *view)
{
	return hand->at == at && hand->tid == view->tid && hand->freelist == view->freelist &&
	       hand->slab == view->slab && hand->random == work->out->random && hand->name == work->out->name;
}

static noinline int look_at_hand(struct work *work, u64 at, u64 *part)
{
	struct kmem_cache_cpu *cpu = (void *)at;
	struct slab_view slab;
	struct hand_view view;
	u64 after = 0, known = 1;

	/* What would not be counted must not be taken for nothing. */
	if (read_hand(at, &view) || (view.slab && !*work->left))
		return 1;
	part[CPU_KNOWN] |= BIT(CPU_SLAB) | BIT(CPU_FREE);
	if (!view.slab)
		return 0;
	part[CPU_SLAB] = 1;
	struct hand_known *hand = hand_of(work, part[CPU_NUMBER]);
	if (look_at_slab(view.slab, &slab) || slab.cache != work->cache || slab.inuse > slab.objects)
		goto moved;
	count_occupancy(&work->out->w[CACHE_CPU_OCCUPANCY], slab.inuse, slab.objects);
	if (hand && is_known(hand, work, at, &view)) {
		part[CPU_FREE] = hand->free;
	} else {
		known = 0;
		if (count_free(work, view.freelist, slab.objects, &part[CPU_FREE]))
			goto moved;
	}
	if (READ(&after, cpu->tid) || after != view.tid)
		goto moved;
	if (hand && !known) {
		hand->at = at;
		hand->tid = view.tid;
		hand->freelist = view.freelist;
		hand->slab = view.slab;
		hand->random = work->out->random;
		hand->name = work->out->name;
		hand->free = part[CPU_FREE];
	}
	/* Those that other processors freed are on the slab's own list. */
	part[CPU_FREE] += slab.objects - slab.inuse;
	return 0;
moved:
	work->out->w[CACHE_MOVED] |= MOVED_CPU;
	part[CPU_KNOWN] &= ~BIT(CPU_FREE);
	return 0;
}

struct partial_walk {
	struct work *work;
	u64 at, slabs, free;
};

static long partial_step(u64 step, struct partial_walk *walk)
{
	struct slab_view slab;

	/* What ends early has not come to the end. */
	if (!walk->at || look_at_slab(walk->at, &slab) || slab.cache != walk->work->cache ||
	    slab.inuse > slab.objects)
		return 1;
	walk->slabs++;
	walk->free += slab.objects - slab.inuse;
	count_occupancy(&walk->work->out->w[CACHE_CPU_OCCUPANCY], slab.inuse, slab.objects);
	/* The word of `next` may be that of the list. */
	u64 at = walk->at;
	return read_next((void *)at, &walk->at) ? (walk->at = at, 1) : 0;
}

static noinline int look_at_partial(struct work *work, u64 at, u64 *part)
{
	struct kmem_cache_cpu *cpu = (void *)at;
	struct partial_walk walk = { .work = work };
	u64 first = 0, after = 0;

	if (READ(&first, cpu->partial))
		return 1;
	part[CPU_KNOWN] |= BIT(CPU_PARTIAL_SLABS) | BIT(CPU_PARTIAL_FREE);
	if (!first)
		return 0;
	/* The kernel keeps a few dozen at the most. */
	walk.at = first;
	bpf_loop(1024, partial_step, &walk, 0);
	part[CPU_PARTIAL_SLABS] = walk.slabs;
	part[CPU_PARTIAL_FREE] = walk.free;
	if (walk.at || READ(&after, cpu->partial) || after != first) {
		work->out->w[CACHE_MOVED] |= MOVED_CPU;
		part[CPU_KNOWN] &= ~(BIT(CPU_PARTIAL_SLABS) | BIT(CPU_PARTIAL_FREE));
	}
	return 0;
}

static noinline int look_at_cpu_slab(struct work *work, u64 at, u64 *part)
{
	struct kmem_cache_cpu *none = 0;

	if (HAS(none->slab) && look_at_hand(work, at, part))
		return 1;
	return HAS(none->partial) && look_at_partial(work, at, part);
}

/* 0 objects where there is no sheaf. */
static always_inline int sheaf_size(struct work *work, u64 at, u64 *size)
{
	struct slab_sheaf *sheaf = (void *)at;

	*size = 0;
	if (!at)
		return 0;
	if (READ(size, sheaf->size))
		return 1;
	/* It is something else by now. */
	if (*size > work->out->w[CACHE_SHEAF_CAPACITY]) {
		*size = 0;
		return 1;
	}
	return 0;
}

static noinline int look_at_sheaves(struct work *work, u64 at, u64 *part)
{
	struct slub_percpu_sheaves *sheaves = (void *)at;
	u64 main = 0, spare = 0, rcu = 0, after = 0, moved = 0;

	if (READ(&main, sheaves->main) || READ(&spare, sheaves->spare) || READ(&rcu, sheaves->rcu_free))
		return 1;
	moved |= sheaf_size(work, main, &part[CPU_SHEAF_MAIN]);
	moved |= sheaf_size(work, spare, &part[CPU_SHEAF_SPARE]);
	moved |= sheaf_size(work, rcu, &part[CPU_SHEAF_RCU]);
	/* They change places, and one would be counted twice. */
	if (moved || READ(&after, sheaves->main) || after != main || READ(&after, sheaves->spare) ||
	    after != spare || READ(&after, sheaves->rcu_free) || after != rcu)
		work->out->w[CACHE_MOVED] |= MOVED_CPU;
	else
		part[CPU_KNOWN] |= BIT(CPU_SHEAF_MAIN) | BIT(CPU_SHEAF_SPARE) | BIT(CPU_SHEAF_RCU);
	return 0;
}

static long cpu_step(u64 number, struct work *work)
{
	struct kmem_cache_cpu *cpu = 0;
	struct kmem_cache *s = 0;
	u64 *part = new_part(HEAD(RECORD_CPU, CPU_WORDS), number);
	u64 offset = percpu_offset(number);
	u64 *out = work->out->w;

	if (!part || !offset) {
		work->out->missing |= CPU_FIGURES;
		return 0;
	}
	/* A cache without sheaves has none that could hold anything. */
	if (HAS(s->cpu_sheaves) && !work->out->cpu_sheaves)
		part[CPU_KNOWN] |= BIT(CPU_SHEAF_MAIN) | BIT(CPU_SHEAF_SPARE) | BIT(CPU_SHEAF_RCU);
	if ((HAS(s->cpu_slab) && look_at_cpu_slab(work, work->out->cpu_slab + offset, part)) ||
	    (HAS(s->cpu_sheaves) && work->out->cpu_sheaves && look_at_sheaves(work, work->out->cpu_sheaves + offset, part))) {
		work->out->missing |= CPU_FIGURES;
		return 0;
	}
	out[CACHE_CPU_SLABS] += part[CPU_SLAB];
	out[CACHE_CPU_FREE] += part[CPU_FREE];
	out[CACHE_CPU_PARTIAL_SLABS] += part[CPU_PARTIAL_SLABS];
	out[CACHE_CPU_PARTIAL_FREE] += part[CPU_PARTIAL_FREE];
	out[CACHE_SHEAF_OBJECTS] += part[CPU_SHEAF_MAIN] + part[CPU_SHEAF_SPARE];
	out[CACHE_RCU_OBJECTS] += part[CPU_SHEAF_RCU];
	if (HAS(s->cpu_slab) && HAS(cpu->slab))
		out[CACHE_KNOWN] |= BIT(CACHE_CPU_SLABS) | BIT(CACHE_CPU_FREE);
	if (HAS(s->cpu_slab) && HAS(cpu->partial))
		out[CACHE_KNOWN] |= BIT(CACHE_CPU_PARTIAL_SLABS) | BIT(CACHE_CPU_PARTIAL_FREE);
	if (HAS(s->cpu_sheaves))
		out[CACHE_KNOWN] |= BIT(CACHE_SHEAF_OBJECTS) | BIT(CACHE_RCU_OBJECTS);
	if (work->parts & PARTS_CPUS)
		emit(work->seq, part, CPU_WORDS * sizeof(u64));
	return 0;
}

/* ---- a cache */
static noinline int look_at_fields(u64 cache, struct cache_record *out)
{
	struct kmem_cache *s = (void *)cache;
	u64 name = 0;

	TAKE(out->w, CACHE_SLAB_SIZE, s->size);
	TAKE(out->w, CACHE_OBJECT_SIZE, s->object_size);
	TAKE(out->w, CACHE_ALIGN, s->align);
	TAKE_IF(out->w, CACHE_USERSIZE, s->usersize, read_usersize, s);
	TAKE(out->w, CACHE_ORDER_OBJECTS, s->oo.x);
	TAKE(out->w, CACHE_MIN_PARTIAL, s->min_partial);
	TAKE_IF(out->w, CACHE_CPU_PARTIAL, s->cpu_partial, read_cpu_partial, s);
	TAKE_IF(out->w, CACHE_SHEAF_CAPACITY, s->sheaf_capacity, read_sheaf_capacity, s);
	TAKE_IF(out->w, CACHE_DEFRAG_RATIO, s->remote_node_defrag_ratio, read_defrag_ratio, s);
	if (READ(&name, s->name))
		return 1;
	return bpf_probe_read_kernel_str(&out->w[CACHE_NAME], (CACHE_WORDS - CACHE_NAME) * 8, (void *)name) < 0;
}

static noinline int look_at_cache(u64 cache, struct seq_file *seq, u64 number)
{
	struct kmem_cache *s = (void *)cache;
	u32 zero = 0;
	struct cache_record *out = bpf_map_lookup_elem(&record, &zero);

	u32 budget = SETTING_LEFT;
	u64 *left = bpf_map_lookup_elem(&settings, &budget);

	if (!out || !left)
		return 1;
	/* Where the kernel gives one cache after the other, each is a run. */
	if (seq)
		*left = setting(SETTING_BUDGET);
	__builtin_memset(out, 0, sizeof(*out));
	out->w[CACHE_HEAD] = HEAD(RECORD_CACHE, CACHE_WORDS);
	out->w[CACHE_ADDRESS] = cache;
	out->w[CACHE_KNOWN] = BIT(CACHE_ADDRESS);
	if (look_at_fields(cache, out))
		return 1;
	struct work work = {
		.out = out,
		.seq = seq,
		.cache = cache,
		.limit = setting(SETTING_WALK),
		.parts = setting(SETTING_PARTS),
		.left = left,
	};
	out->number = number;
	bpf_loop(possible_nodes, node_step, &work, 0);
	/* No kernel keeps its caches without the one or the other. */
	if (HAS(s->cpu_slab) && (read_cpu_slab(s, &out->cpu_slab) || !out->cpu_slab ||
				 READ(&out->offset, s->offset) || READ(&out->name, s->name)))
		out->missing |= CPU_FIGURES;
	if (HAS(s->cpu_slab) && HAS(s->random) && read_random(s, &out->random))
		out->missing |= CPU_FIGURES;
	if (HAS(s->cpu_sheaves) && read_cpu_sheaves(s, &out->cpu_sheaves))
		out->missing |= CPU_FIGURES;
	if (!(out->missing & CPU_FIGURES))
		bpf_loop(possible_cpus, cpu_step, &work, 0);
	if (out->missing) {
		out->w[CACHE_KNOWN] &= ~out->missing;
		out->w[CACHE_MOVED] |= MOVED_UNREAD;
	}
	emit(seq, out, sizeof(out->w));
	return 0;
}

SEC("iter/kmem_cache")
int caches(struct bpf_iter__kmem_cache *context)
{
	struct kmem_cache *cache = context->s;

	if (context->meta->seq_num == 0)
		learn_percpu();
	if (cache && look_at_cache((u64)cache, context->meta->seq, context->meta->seq_num))
		count_one(SETTING_UNSEEN);
	return 0;
}

struct list_walk {
	u64 at;
};

static long list_step(u64 step, struct list_walk *walk)
{
	struct kmem_cache *none = 0;
	struct list_head *link = (void *)walk->at;
	u64 next = 0, back = 0;

	if (!walk->at || walk->at == slab_caches)
		return 1;
	if (look_at_cache(walk->at - OFFSET(none->list), 0, step))
		count_one(SETTING_UNSEEN);
	if (READ(&next, link->next))
		return 1;
	/* A cache that is taken off the list meanwhile leads nowhere. */
	struct list_head *after = (void *)next;
	if (READ(&back, after->prev) || back != walk->at)
		return 1;
	walk->at = next;
	return 0;
}

SEC("iter/bpf_map")
int list(struct bpf_iter__bpf_map *context)
{
	struct list_walk walk = {};
	struct list_head *head = (void *)slab_caches;

	if (context->meta->seq_num != 0 || !slab_caches)
		return 0;
	learn_percpu();
	if (!READ(&walk.at, head->next))
		bpf_loop(1 << 16, list_step, &walk, 0);
	if (walk.at != slab_caches)
		count_one(SETTING_ENDED);
	return 0;
}

/* Loaded, and never attached, to find out whether the kernel takes its kind. */
SEC("fentry/kmem_cache_free")
int fentry_probe(void *context)
{
	return 0;
}
