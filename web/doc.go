// Package web serves web pages of ductor on the loopback interface. Clients need a token. The package can send streams
// of events to pages, and contains the files that all pages share.
package web
