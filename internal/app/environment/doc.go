// Package environment opens the environments in which a configuration runs agents, other than the plain host: the
// sandboxes of projects and conversations, and the homes of sessions. It translates their settings, finds the
// directory, maintains containers and images, and lists the data that retention may remove.
//
// The package does not start processes. Package docker starts them in containers, and package cli/host on this machine.
package environment
