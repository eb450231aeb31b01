// Package environment opens the environments in which a configuration runs agents besides the plain host: the sandboxes
// of projects and conversations, and the homes of sessions. It translates their settings, says by directory where agents
// run, keeps containers and images in order, and lists what retention may remove.
//
// It is not a launcher: processes start in package docker and on the host by package cli.
package environment
