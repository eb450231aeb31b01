// Package docker is a launcher that runs processes in containers. Each project or conversation has one container, whose
// image the package prepares. In the container runs ductor's own runner (cmd/ductor-runner), so that stopping,
// detaching and attaching work as on the host; this package connects the runner's client to it.
//
// The package is not a scheduler and not a registry, and it never runs anything on the host: it rejects what a
// container cannot do, with a reason. It uses the Docker Engine API, version 1.41 or later.
package docker
