// Package scenario defines the language of the ordeal, which tests all of ductor with random actions and faults. A
// scenario is a text. Each line is a fault or an action of a user, together with the work that the agent must do.
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
// Each prompt has a token, for example p1. The agent writes words that contain the token (p1w0 p1w1 …), and causes
// effects whose names contain the token (p1.1 is the effect of the second act of p1). So one can see from outside which
// acts have run and which words the chat shows.
//
// The steps run without a pause: two lines without a wait in between are two users who act at the same time. After the
// last step, all faults end (as with heal), and all work finishes (as with settle). Then the judge examines what
// happened.
//
// The package does not run scenarios. Package simulated runs them in a single process with a simulated clock, and
// package real runs them with real processes. These two are called worlds.
package scenario
