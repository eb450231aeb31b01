// Package alerts tells the owner of troubles of the machine in the chat: once when one begins and once when it is over, also over
// restarts.
package alerts
