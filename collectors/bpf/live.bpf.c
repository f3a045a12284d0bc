/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The objects of one cache that were allocated since the programs were attached
 * and are not freed yet, each with the stack that allocated it.
 *
 * Of many objects one in some is followed, chosen by its address, so that its
 * free is met too. What finds no room is counted. Frees in bulk and by
 * kfree_rcu pass no tracepoint: an object that is allocated again while it is
 * still followed was freed so, and is counted.
 *
 * Source of truth: include/trace/events/kmem.h, Linux 6.1 to 7.3.
 */
#include "bpf.h"
#include "kernel.h"
#include "objects.h"
#include "live.h"

char terms[] SEC("license") = "Dual BSD/GPL";

/* The cache's address. */
const volatile u64 target = 0;
/* An object is followed where these bits of its hash are 0. */
const volatile u64 sample_mask = 0;

struct object {
	u64 w[OBJECT_WORDS];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 1); /* set at load */
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct object);
} objects SEC(".maps");

struct stack {
	u64 frames[STACK_FRAMES];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_STACK_TRACE);
	MAP_NUMBER(max_entries, 1); /* set at load */
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct stack);
} stacks SEC(".maps");

struct tally {
	u64 w[TALLY_WORDS];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct tally);
} tally SEC(".maps");

static always_inline void count(u32 which)
{
	u32 zero = 0;
	struct tally *words = bpf_map_lookup_elem(&tally, &zero);

	if (words && which < TALLY_WORDS)
		words->w[which]++;
}

/* The lowest bits of an address are those of its place in the slab. */
static always_inline int is_followed(u64 object)
{
	return (object * 0x9e3779b97f4a7c15ull >> 40 & sample_mask) == 0;
}

static always_inline void on_alloc(u64 *args)
{
	u64 address = args[1];
	struct object object = {};

	count(TALLY_ALLOCS);
	if (!is_followed(address))
		return;
	object.w[OBJECT_STACK] = bpf_get_stackid(args, &stacks, 0);
	object.w[OBJECT_SINCE] = bpf_ktime_get_ns();
	object.w[OBJECT_PID] = bpf_get_current_pid_tgid() >> 32;
	object.w[OBJECT_SITE] = args[0];
	if ((s64)object.w[OBJECT_STACK] < 0)
		count(TALLY_STACKLESS);
	long failed = bpf_map_update_elem(&objects, &address, &object, BPF_NOEXIST);
	if (failed == -17) {
		count(TALLY_AGAIN);
		failed = bpf_map_update_elem(&objects, &address, &object, BPF_ANY);
	}
	if (failed)
		count(TALLY_DROPPED);
}

/* 2 is that there was none. */
static always_inline void forget(u64 address)
{
	if (!is_followed(address))
		return;
	long failed = bpf_map_delete_elem(&objects, &address);
	if (failed && failed != -2)
		count(TALLY_KEPT);
}

SEC("raw_tp/kmem_cache_alloc")
int on_kmem_cache_alloc(u64 *args)
{
	if (args[1] && args[2] == target)
		on_alloc(args);
	return 0;
}

SEC("raw_tp/kmem_cache_free")
int on_kmem_cache_free(u64 *args)
{
	if (args[2] == target)
		forget(args[1]);
	return 0;
}

SEC("raw_tp/kmalloc")
int on_kmalloc(u64 *args)
{
	if (args[1] > 16 && cache_of(args[1]) == target)
		on_alloc(args);
	return 0;
}

/* It may free an object of any cache. */
SEC("raw_tp/kfree")
int on_kfree(u64 *args)
{
	if (args[1] > 16)
		forget(args[1]);
	return 0;
}
