// Package config reads config.toml: the names, defaults and limits of its keys. It finds every mistake in a file at once
// and names it by line, column and key.
//
// It is not the wiring: it starts nothing, checks nothing outside the file but the token's own file, and
// imports no other package of ductor. What a value means is the business of the package that gets it.
package config
