/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Allocations and frees of every cache, and which path they took.
 *
 * Counted at the kernel's own tracepoints. The path is inferred from what the
 * allocator will look at: an allocation is slow when the processor's slab or
 * sheaves were seen empty by the event before it; a free is slow when the
 * object's slab is not the processor's, or its sheaves are full. Or the slow
 * paths are counted where they are taken, at the entry of functions. Events that
 * interrupt the same program are missed; the kernel counts those. Frees in
 * bulk and by kfree_rcu pass no tracepoint.
 *
 * Source of truth: mm/slub.c, Linux 6.1 to 7.3; include/trace/events/kmem.h.
 */
#include "bpf.h"
#include "kernel.h"
#include "slots.h"
#include "objects.h"

char terms[] SEC("license") = "Dual BSD/GPL";

/* The thread that reads the counts: what it does itself is left out. 0: nobody. */
u64 observer = 0;

/* Slots, less one; a power of two, less one. */
const volatile u32 slot_mask = 0;

/* 0: events are counted and no path is inferred. The verifier takes what is
 * never reached out of the programs. */
const volatile u32 paths = 1;

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1); /* set at load */
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct slot);
} slots SEC(".maps");

struct counts {
	u64 w[COUNT_WORDS];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1); /* set at load */
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct counts);
} counts SEC(".maps");

struct here {
	u64 w[HERE_WORDS];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct here);
} here SEC(".maps");

static always_inline struct slot *slot_of(u64 cache)
{
	u32 at = cache * SLOT_FACTOR >> SLOT_SHIFT;

#pragma clang loop unroll(full)
	for (u32 step = 0; step < SLOT_PROBES; step++) {
		u32 key = (at + step) & slot_mask;
		struct slot *slot = bpf_map_lookup_elem(&slots, &key);
		if (!slot || !slot->cache)
			return 0;
		if (slot->cache == cache)
			return slot;
	}
	return 0;
}

static always_inline u64 *counts_of(struct slot *slot)
{
	u32 index = slot->index;
	struct counts *found = bpf_map_lookup_elem(&counts, &index);
	return found ? found->w : 0;
}

/* ---- this processor's part of per-CPU data: what has to be added to a pointer.
 * The address of this map's element here, less the pointer of all its elements. */
static noinline u64 learn_offset(struct here *mine)
{
	u64 map = 0, base = 0, address = 0;

	if (!mine || ADDRESS(&map, &here) || ADDRESS(&address, mine))
		return 0;
	struct bpf_array *array = (void *)map;
	if (bpf_probe_read_kernel(&base, sizeof(base), (char *)array + OFFSET(array->pptrs)))
		return 0;
	mine->w[HERE_OFFSET] = address - base;
	return address - base;
}

static noinline u64 offset_here(void)
{
	u32 zero = 0;
	struct here *mine = bpf_map_lookup_elem(&here, &zero);

	if (!mine)
		return 0;
	return mine->w[HERE_OFFSET] ? mine->w[HERE_OFFSET] : learn_offset(mine);
}

static always_inline void elsewhere(u32 program)
{
	u32 zero = 0;
	struct here *mine = bpf_map_lookup_elem(&here, &zero);

	if (mine)
		mine->w[HERE_ELSEWHERE + program]++;
}

/* ---- where a cache keeps what it has near processors: the same for its life */
static noinline u64 sheaves_of(u64 cache, u64 *pointer)
{
	struct kmem_cache *s = (void *)cache;
	u64 capacity = 0;

	if (READ(pointer, s->cpu_sheaves) || !*pointer || READ(&capacity, s->sheaf_capacity))
		return 0;
	return capacity;
}

static noinline int hand_of(u64 cache, u64 *pointer)
{
	struct kmem_cache *s = (void *)cache;

	return READ(pointer, s->cpu_slab);
}

static noinline u32 pages_of(u64 cache)
{
	struct kmem_cache *s = (void *)cache;
	u64 order_objects = 0;

	/* The order is above the number of objects. */
	if (READ(&order_objects, s->oo.x) || order_objects >> 16 > 16)
		return 0;
	return 1u << (order_objects >> 16);
}

static noinline u64 learn_slot(struct slot *slot)
{
	struct kmem_cache *none = 0;
	u64 pointer = 0, capacity = 0;

	if (!slot)
		return 0;
	if (HAS(none->cpu_sheaves))
		capacity = sheaves_of(slot->cache, &pointer);
	if (!capacity) {
		pointer = 0;
		if (HAS(none->cpu_slab))
			hand_of(slot->cache, &pointer);
	}
	slot->capacity = capacity;
	slot->pages = pages_of(slot->cache);
	slot->pointer = pointer;
	return pointer;
}

enum { NOT_LEARNED, NO_PLACE };

static noinline u64 learn_near(struct slot *slot, struct counts *counts)
{
	u64 offset = offset_here();

	if (!slot || !counts || !offset)
		return NO_PLACE;
	u64 pointer = slot->pointer ? slot->pointer : learn_slot(slot);
	counts->w[COUNT_NEAR] = pointer ? pointer + offset : NO_PLACE;
	return counts->w[COUNT_NEAR];
}

/* Where on this processor the cache has its sheaves, or the slab in hand. */
static always_inline u64 near(struct slot *slot, struct counts *counts)
{
	u64 known = counts->w[COUNT_NEAR];
	return known == NOT_LEARNED ? learn_near(slot, counts) : known;
}

/* ---- a processor's sheaves */
struct pair {
	u64 main, spare;
};

static noinline int look_at_sheaves(u64 at, struct pair *out)
{
	struct slub_percpu_sheaves *sheaves = (void *)at;

	/* One read for both. */
	if (!out || OFFSET(sheaves->spare) != OFFSET(sheaves->main) + sizeof(u64))
		return 1;
	return bpf_probe_read_kernel(out, sizeof(*out), &sheaves->main) || !out->main;
}

/* Objects in a sheaf; none in the one that is not there. */
static noinline u64 size_of_sheaf(u64 at)
{
	struct slab_sheaf *sheaf = (void *)at;
	u64 size = 0;

	if (at)
		READ(&size, sheaf->size);
	return size;
}

/* ---- a processor's slab */
struct hand {
	u64 freelist, slab;
};

/* One read for both words, where they lie close. */
static noinline int look_at_hand(u64 at, struct hand *out)
{
	struct kmem_cache_cpu *cpu = (void *)at;
	u64 words[4];
	char *base = (char *)words;
	u64 freelist = OFFSET(cpu->freelist), slab = OFFSET(cpu->slab);

	if (!out || freelist > 24 || slab > 24 || bpf_probe_read_kernel(words, sizeof(words), cpu))
		return 1;
	out->freelist = *(u64 *)(base + freelist);
	out->slab = *(u64 *)(base + slab);
	return 0;
}

/* What the next allocation meets; a slab's address, and this where it has no
 * free object. 0 is not known. */
enum { NOTHING = 1, SHEAVES = 2 };

static noinline int infer_alloc(struct slot *slot, struct counts *counts, u32 program)
{
	struct kmem_cache_cpu *none = 0;
	struct kmem_cache *sheafed = 0;

	if (!slot || !counts || program > COUNT_KFREE)
		return 0;
	u64 at = near(slot, counts);
	u64 before = counts->w[COUNT_STATE], now = 0, slow = 0;
	if (at == NO_PLACE)
		return 0;
	if (HAS(sheafed->cpu_sheaves) && slot->capacity) {
		struct pair sheaves = {};
		if (look_at_sheaves(at, &sheaves))
			return 0;
		slow = before & NOTHING;
		now = SHEAVES | (!size_of_sheaf(sheaves.main) && !size_of_sheaf(sheaves.spare));
	} else if (HAS(none->slab)) {
		struct hand hand = {};
		if (look_at_hand(at, &hand))
			return 0;
		slow = (before & NOTHING) || (before && before != hand.slab);
		now = hand.slab | (hand.freelist ? 0 : NOTHING);
	}
	if (slow)
		counts->w[COUNT_SLOW + program]++;
	else if (!before)
		counts->w[COUNT_UNSURE]++;
	counts->w[COUNT_STATE] = now;
	return 0;
}

/* Whether an object is of that slab. It is where its page is the slab's first,
 * and is not beyond the most that slabs of its cache have; only between these
 * the page has to tell. */
static always_inline int is_in_slab(u64 object, u64 slab, u32 pages)
{
	u64 page = page_of(object), distance = page - slab;

	if (!distance)
		return 1;
	if (pages && distance >= pages * page_descriptor)
		return 0;
	return slab_of_page(page) == slab;
}

static noinline int infer_free(struct slot *slot, struct counts *counts, u32 program, u64 object)
{
	struct kmem_cache_cpu *none = 0;
	struct kmem_cache *sheafed = 0;

	if (!slot || !counts || program > COUNT_KFREE)
		return 0;
	u64 at = near(slot, counts), slow = 0;
	if (at == NO_PLACE)
		return 0;
	if (HAS(sheafed->cpu_sheaves) && slot->capacity) {
		struct pair sheaves = {};
		u64 capacity = slot->capacity;
		if (look_at_sheaves(at, &sheaves))
			return 0;
		slow = size_of_sheaf(sheaves.main) >= capacity &&
		       (!sheaves.spare || size_of_sheaf(sheaves.spare) >= capacity);
		counts->w[COUNT_STATE] = SHEAVES;
	} else if (HAS(none->slab) && page_key) {
		struct hand hand = {};
		if (look_at_hand(at, &hand))
			return 0;
		slow = !is_in_slab(object, hand.slab, slot->pages);
		/* The object will be on the list that is in hand. */
		if (!slow)
			counts->w[COUNT_STATE] = hand.slab;
	}
	if (slow)
		counts->w[COUNT_SLOW + program]++;
	return 0;
}

static always_inline void on_alloc(u64 cache, u32 program)
{
	struct slot *slot = slot_of(cache);
	u64 *words = slot ? counts_of(slot) : 0;

	if (!words) {
		elsewhere(program);
		return;
	}
	words[program]++;
	if (paths)
		infer_alloc(slot, (struct counts *)words, program);
}

static always_inline void on_free(u64 cache, u64 object, u32 program)
{
	struct slot *slot = slot_of(cache);
	u64 *words = slot ? counts_of(slot) : 0;

	if (!words) {
		elsewhere(program);
		return;
	}
	words[program]++;
	if (paths)
		infer_free(slot, (struct counts *)words, program, object);
}

static always_inline int is_observed(void)
{
	return bpf_get_current_task() != observer;
}

/* Run by whoever reads it, which is how he is known. */
SEC("iter/bpf_map")
int observe(struct bpf_iter__bpf_map *context)
{
	observer = bpf_get_current_task();
	return 0;
}

/* ---- the tracepoints; the first argument of each is where it was called from */
SEC("raw_tp/kmem_cache_alloc")
int on_kmem_cache_alloc(u64 *args)
{
	if (args[1] && is_observed())
		on_alloc(args[2], COUNT_ALLOC);
	return 0;
}

SEC("raw_tp/kmem_cache_free")
int on_kmem_cache_free(u64 *args)
{
	if (args[1] && is_observed())
		on_free(args[2], args[1], COUNT_FREE);
	return 0;
}

/* A pointer to nothing is NULL, or the 16 of a request for no bytes. */
SEC("raw_tp/kmalloc")
int on_kmalloc(u64 *args)
{
	if (args[1] > 16 && is_observed())
		on_alloc(cache_of(args[1]), COUNT_KMALLOC);
	return 0;
}

SEC("raw_tp/kfree")
int on_kfree(u64 *args)
{
	if (args[1] > 16 && is_observed())
		on_free(cache_of(args[1]), args[1], COUNT_KFREE);
	return 0;
}

/* ---- functions whose first argument is the cache, where the kernel allows it; the
 * loader says which. What the argument points to is not read. */
static always_inline int at_function(u64 *context, u32 which)
{
	u64 cache = 0;

	if (!is_observed() || bpf_get_func_arg(context, 0, &cache))
		return 0;
	struct slot *slot = slot_of(cache);
	u64 *words = slot ? counts_of(slot) : 0;
	if (words)
		words[COUNT_SLOW + which]++;
	return 0;
}

SEC("fentry")
int on_slow_alloc(u64 *context)
{
	return at_function(context, 0);
}

SEC("fentry")
int on_slow_free(u64 *context)
{
	return at_function(context, 1);
}

SEC("fentry")
int on_alloc_slab(u64 *context)
{
	return at_function(context, 2);
}

SEC("fentry")
int on_free_slab(u64 *context)
{
	return at_function(context, 3);
}

/* A slab's descriptor still names its cache when its pages are given back; once
 * on a list of free pages it does not. The argument is that descriptor. */
SEC("raw_tp/mm_page_free")
int on_mm_page_free(u64 *args)
{
	u64 cache = cache_of_slab(args[0]);
	struct slot *slot = cache ? slot_of(cache) : 0;
	u64 *words = slot ? counts_of(slot) : 0;

	if (words)
		words[COUNT_GONE]++;
	return 0;
}
