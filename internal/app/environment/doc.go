// Package environment opens the environments in which a configuration runs agents besides the plain host: the
// sandboxes of projects and conversations, and the homes of sessions. It translates their settings, finds the
// directory, maintains containers and images, and lists the data that retention may remove.
//
// Package environment launches no processes: package docker does so in containers, and package cli/host on this
// machine.
package environment
