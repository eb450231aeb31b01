// Package web serves pages of ductor on the loopback interface: it lets in only who knows the token, streams events to
// pages, and holds the parts that all pages share.
package web
