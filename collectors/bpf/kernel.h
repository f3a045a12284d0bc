/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's structures, with the fields that the programs read and no
 * others. Order, offsets and sizes are those of the running kernel.
 *
 * Source of truth: mm/slab.h, mm/slub.c, Linux 6.1 to 7.3. What is behind
 * three underscores is one layout of several; fields that only some kernels
 * have are read behind HAS.
 */
#ifndef SLABCTL_KERNEL_H
#define SLABCTL_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};
typedef struct {
	long counter;
} atomic_long_t;

struct slab {
	struct kmem_cache *slab_cache;
	struct list_head slab_list;
	struct slab *next;				/* to 6.19 */
	void *freelist;
	u32 inuse : 16, objects : 15, frozen : 1;
};

struct kmem_cache_order_objects {
	u32 x;
};
struct kmem_cache {
	struct kmem_cache_cpu *cpu_slab;		/* to 6.19 */
	struct slub_percpu_sheaves *cpu_sheaves;	/* from 6.18 */
	unsigned long min_partial;
	u32 flags, size, object_size, offset, align, usersize;
	u32 cpu_partial;				/* to 6.19 */
	u32 sheaf_capacity;				/* from 6.18 */
	u32 remote_node_defrag_ratio;			/* CONFIG_NUMA */
	unsigned long random;				/* CONFIG_SLAB_FREELIST_HARDENED */
	struct kmem_cache_order_objects oo;
	const char *name;
	struct list_head list;
	struct kmem_cache_node *node[2];		/* in 7.0; not in 7.3 */
};
struct kmem_cache_per_node_ptrs {
	struct node_barn *barn;
	struct kmem_cache_node *node;
};
struct kmem_cache___per_node {
	struct kmem_cache_per_node_ptrs per_node[2];	/* 7.3 */
};

struct kmem_cache_cpu {
	void **freelist;
	unsigned long tid;
	struct slab *slab;
	struct slab *partial;				/* CONFIG_SLUB_CPU_PARTIAL */
};
struct kmem_cache_node {
	unsigned long nr_partial;
	struct list_head partial;
	atomic_long_t nr_slabs, total_objects;		/* CONFIG_SLUB_DEBUG */
	struct node_barn *barn;				/* from 6.18; in 7.0, not in 7.3 */
};

struct slab_sheaf {
	struct list_head barn_list;
	u32 size;
};
struct slub_percpu_sheaves {
	struct slab_sheaf *main, *spare, *rcu_free;
};
struct node_barn {
	struct list_head sheaves_full;
	u32 nr_full, nr_empty;
};

/* Iterators, and what a map is made of. */
struct bpf_map;
struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id, seq_num;
};
struct bpf_iter__kmem_cache {
	struct bpf_iter_meta *meta;
	struct kmem_cache *s;
};
struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
};
struct bpf_array {
	void *pptrs[1];
};

#pragma clang attribute pop

#endif
