// Package config reads config.toml: what each key is called, what it is when it is not set, and what it may
// be. Every mistake in a file is found at once and named by line, column and key.
//
// It is not the wiring: it starts nothing, checks nothing outside the file but the token's own file, and
// imports no other room. What a value means is the business of the room that gets it.
package config
