// Package card shows a turn as one message that grows by edits, and its outcome when the turn has ended.
package card
