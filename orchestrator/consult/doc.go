// Package consult asks models questions outside of the turns of a session. Their agents may only read files. Question
// and answer become an entry of the session. The package can also run an agent that works for a running turn, with the
// rights of that turn. It limits how many questions a conversation asks at the same time, how long each may take, and
// how long answers are.
//
// The package does NOT show anything in a chat and does not find models by their names.
package consult
