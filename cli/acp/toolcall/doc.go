// Package toolcall reads the descriptions of tool calls that agents send by the Agent Client Protocol: the command, the
// files, the changes of files and the output. Agents put these into different fields. The package also finds the input
// fields that only repeat a displayed change, so that users need not see them.
package toolcall
