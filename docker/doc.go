// Package docker is a launcher that runs processes in containers. Each project or conversation has one container, whose
// image the package prepares. ductor's own runner (cmd/ductor-runner) runs in the container, so that stopping,
// detaching and attaching work as on the host. The package connects to the runner with package internal/runner.
//
// The package is neither a scheduler nor a registry. It never runs anything on the host: if a container cannot do
// something, it returns an error with the reason. It uses the Docker Engine API, version 1.41 or later.
package docker
