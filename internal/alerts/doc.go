// Package alerts notifies the owner in the chat about problems of the machine: once when a problem begins, and once
// when it ends, even if ductor restarts in between.
package alerts
