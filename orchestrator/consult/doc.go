// Package consult asks models beside the turns of a session. Question and answer are an entry of the session. The
// models may only read. For a running turn, agents can also do work there with the rights of that turn. The package
// limits the number of simultaneous questions of a conversation, the time for each, and the length of answers.
//
// The package does NOT show anything in a chat and does not find models by their names.
package consult
