// Package scenario is the language of the ordeal: what users do, what agents do, and what goes wrong, one line each.
//
//	seed 42
//	agents claude codex
//	language owner de
//	set queue.max "3"
//	chat lab forum red blue
//
//	owner says p1: text 60 every 20ms; run; write a.txt
//	ann says in lab/red p2: ask; text 10
//	telegram drop-after at sendMessage
//	owner presses approval.allow-once of p2
//	crash at call 3 for 5s
//	wait 2s
//
// Each prompt has a token (p1). The agent writes words that carry the token (p1w0 p1w1 …) and causes effects that carry it
// (p1.1: the second act of p1), so that a judge can read from outside what ran and what was shown.
//
// A step is performed at once: two lines without a wait between them are two users who act at the same time. After the last
// step the faults end (as after heal) and all comes to rest (as after settle); then the judge looks.
//
// The package performs nothing. The worlds beside it do.
package scenario
