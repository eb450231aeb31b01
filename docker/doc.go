// Package docker is a launcher whose processes live in containers: one for a project or a conversation, of an image that
// it makes fit. Inside runs ductor's own runner (cmd/ductor-runner), so that stopping, detaching from and
// attaching to a run work as they do on the host; this package carries the bytes of its client in and out.
//
// It is not a scheduler, not a registry, and never a way to the host: what it cannot do in a container it refuses
// with a reason. Sources: the Docker Engine API, version 1.41 and later.
package docker
