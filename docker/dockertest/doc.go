// Package dockertest contains helpers for tests with a Docker Engine. They use the engine of this machine, or skip the
// test if there is none. They also start separate engines, which a test may stop, fill up, or reach through TLS and
// ssh. They build images from local files.
//
// The package is for tests only. It knows nothing of ductor's sandboxes: it uses engines through the docker program,
// like a user without ductor.
package dockertest
