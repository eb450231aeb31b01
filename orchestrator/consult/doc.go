// Package consult asks models beside the turns of conversations: each in a side session of its own that can be continued, for
// reading only. There it also has agents work for a turn, with the rights of that turn. It limits how many questions a conversation asks at once, how long each may take and how long an answer may be.
//
// The package does NOT show anything in a chat and does not find models by their names.
package consult
