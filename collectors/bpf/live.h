/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs of live.bpf.c write. live.rs has the same numbers, and a
 * test that reads this file.
 */
#ifndef SLABCTL_LIVE_H
#define SLABCTL_LIVE_H

enum { STACK_FRAMES = 32 };

enum object_word {
	OBJECT_STACK,	/* number of its stack; negative: none */
	OBJECT_SINCE,	/* nanoseconds of the monotonic clock */
	OBJECT_PID,
	OBJECT_SITE,	/* address in the function that allocated */
	OBJECT_WORDS,
};

enum tally_word {
	TALLY_ALLOCS,	/* all allocations of the cache */
	TALLY_DROPPED,	/* objects that found no room */
	TALLY_AGAIN,	/* objects whose free was not seen */
	TALLY_STACKLESS,	/* stacks that found no room */
	TALLY_KEPT,	/* objects that could not be forgotten when freed */
	TALLY_WORDS,
};

#endif
