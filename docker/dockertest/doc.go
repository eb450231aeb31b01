// Package dockertest contains helpers for tests with a Docker Engine: the machine's engine (or a skip), separate
// engines that may be stopped, filled up and reached through TLS and ssh, and an image built from local files.
//
// It is for tests only. It knows nothing of ductor's sandboxes and uses engines through the docker program, as a user
// without ductor would.
package dockertest
