// Package consult lets users and agents ask models questions, outside of the turns of a session. The agents that answer
// may only read files. Question and answer become an entry of the session. The package limits the number of
// simultaneous questions in a conversation, the time of a question, and the length of an answer.
//
// The package can also run an agent that works for a running turn, with the rights of that turn.
//
// The package does NOT show anything in a chat and does not find models by their names.
package consult
