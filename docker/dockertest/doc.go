// Package dockertest is what tests with a Docker Engine share: the machine's engine or a skip, engines of a test's
// own that may be stopped, filled up and reached by TLS and ssh, and an image that is made of local files.
//
// It is for tests only. It knows nothing of ductor's sandboxes and speaks to engines by docker's own program, as a
// user does without ductor.
package dockertest
