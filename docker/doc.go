// Package docker is a launcher that runs processes in containers. Each project or conversation has one container, whose
// image the package prepares. ductor's own runner (cmd/ductor-runner) runs in the container, so that stopping,
// detaching and attaching work as on the host. This package connects the runner's client to it.
//
// The package is not a scheduler and not a registry. It never runs anything on the host: it returns an error with a
// reason for anything that a container cannot do. It uses the Docker Engine API, version 1.41 or later.
package docker
