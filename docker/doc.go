// Package docker runs agents in containers. Its Launcher starts processes in one container, which belongs to a project
// or a conversation. The package creates the container, and adds ductor-runner (cmd/ductor-runner) to its image.
// ductor-runner supervises the processes, so that stopping, detaching and attaching work as on the host; see package
// internal/runner.
//
// If a container cannot do something, the package returns an error with the reason, and never runs anything on the
// host. The package uses the Docker Engine API, version 1.41 or later.
package docker
