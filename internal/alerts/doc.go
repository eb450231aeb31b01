// Package alerts notifies the owner in the chat about problems of the machine. It sends one message when a problem
// begins and one when it ends, even if ductor restarts meanwhile.
package alerts
