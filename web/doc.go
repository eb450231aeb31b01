// Package web serves pages of ductor on the loopback interface. It requires a token, streams events to pages, and
// contains the files that all pages share.
package web
