// Package environment opens the environments in which agents run, except for the plain host: the sandboxes of projects
// and conversations, and the homes of sessions. A sandbox runs agents in a container. The package converts the
// settings, finds the sandbox for a directory, maintains containers and images, and lists the data that retention may
// remove.
//
// The package does not start processes. Package docker starts them in containers, and package cli/host on this machine.
package environment
