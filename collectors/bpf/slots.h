/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The caches that are known, by address, and their counts by processor.
 *
 * The loader fills the slots with the caches of a snapshot before it attaches
 * anything. An address that is in no slot counts nowhere, so that a wrong answer
 * to "which cache is this object of" cannot invent one. paths.rs has the same
 * numbers, and a test that reads this file.
 */
#ifndef SLABCTL_SLOTS_H
#define SLABCTL_SLOTS_H

/* How a cache's slot is found: this many are tried from its hash on. */
#define SLOT_PROBES 8
#define SLOT_FACTOR 0x9e3779b97f4a7c15ull
#define SLOT_SHIFT 40

/* A slot of the table. The cache comes last, so that one which is being written
 * is not found before it is whole. */
struct slot {
	u32 index;	/* of its counts */
	u32 pages;	/* of its largest slabs; 0: not known */
	u64 pointer;	/* per-CPU: sheaves, or the slab in hand; 0: not known */
	u64 capacity;	/* of a sheaf; 0: it has none */
	u64 cache;	/* address; 0: the slot was never used */
};

/* Words of a cache's counts on one processor. Each program has words of its own:
 * one may interrupt another between a read and a write. */
enum count_word {
	COUNT_ALLOC,		/* by kmem_cache_alloc */
	COUNT_KMALLOC,
	COUNT_FREE,		/* by kmem_cache_free */
	COUNT_KFREE,
	COUNT_SLOW,		/* 4 words: those of the above that were slow, or calls by function */
	COUNT_GONE = COUNT_SLOW + 4, /* slabs given back */
	COUNT_STATE,		/* what the next allocation will meet */
	COUNT_UNSURE,		/* allocations whose path was not known beforehand */
	COUNT_NEAR,		/* address of what the cache keeps here; 0: not learned yet, 1: nothing */
	COUNT_WORDS = 16,
};

/* What a processor knows, in one place for all caches. */
enum here_word {
	HERE_OFFSET,		/* of its per-CPU data */
	HERE_ELSEWHERE,		/* 4 words: events of no known cache, by program */
	HERE_WORDS = HERE_ELSEWHERE + 4,
};

#endif
