/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The processors of a cache: the slab in hand with its free list, the partial
 * slabs, the sheaves. What is counted when a list moves is in the sums of the
 * cache, which are marked then; the processor's own words are not known.
 *
 * Source of truth: mm/slub.c, Linux 6.1 to 7.3.
 */
#ifndef SLABCTL_SNAPSHOT_CPUS_H
#define SLABCTL_SNAPSHOT_CPUS_H

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

#endif
