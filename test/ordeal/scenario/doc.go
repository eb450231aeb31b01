// Package scenario is the language of the ordeal. Each line is an action of a user, an action of an agent, or a
// fault.
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
// Each prompt has a token (p1). The agent writes words with the token (p1w0 p1w1 …) and causes effects with it (p1.1:
// the second act of p1). From outside, a judge can see which acts ran and which words the chat shows.
//
// Steps are performed at once: two lines without a wait in between are two users who act at the same time. After the
// last step, all faults end (as with heal) and everything comes to rest (as with settle). Then the judge examines the
// run.
//
// The package performs nothing. The packages of the worlds do.
package scenario
