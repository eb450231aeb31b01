// Package turn is the loop of one turn over what an agent's process prints: it reads lines, emits events in their order,
// notices a stall, and cancels, interrupts, ends or detaches from the process.
//
// It knows no protocol: a dialect says what a line means (Loop.Handle) and what to send. It starts no process, and it knows
// nothing of other turns.
package turn
