// Package docker runs agents inside containers: it makes an image fit, makes and keeps a container for a project
// or a conversation, and gives a cli.Launcher whose processes live in there. Inside runs ductor's own supervisor
// (cmd/ductor-supervisor), so that stopping, detaching from and attaching to a run work as they do on the host;
// this package is how its client's bytes get in and out.
//
// It is NOT a scheduler, not a registry, and never a way to the host: what it cannot do in a container it refuses
// with a reason. Sources: the Docker Engine API, version 1.41 and later.
package docker
