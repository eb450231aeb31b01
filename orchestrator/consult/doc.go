// Package consult asks models outside of the turns of a session. These models may only read files. Question and answer
// become an entry of the session. The package also lets agents do work for a running turn, with the rights of that
// turn. It limits the number of simultaneous questions of a conversation, the time for each, and the length of answers.
//
// The package does NOT show anything in a chat and does not find models by their names.
package consult
