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
#include "snapshot_work.h"
#include "snapshot_slab.h"
#include "snapshot_nodes.h"
#include "snapshot_cpus.h"

char terms[] SEC("license") = "Dual BSD/GPL";

/* A cache. */
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
	bpf_loop(possible_nodes, settle_step, &work, 0);
	if (out->partial != out->w[CACHE_PARTIAL] || out->slabs != out->w[CACHE_SLABS] ||
	    out->full != out->w[CACHE_BARN_FULL])
		out->w[CACHE_MOVED] |= MOVED_BETWEEN;
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
