// Package edit reads the changes of files that an agent describes in a tool call. Some agents send the old and the new
// text of a file, others put a diff into the tool's input. The package also finds the input fields that only repeat such
// a change, so that users need not see them.
package edit
