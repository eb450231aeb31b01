// Package config reads config.toml. Each package of ductor declares its own settings as a struct. The tags of a field
// define its key, its default, the check of its value, and when a change applies. Config nests these structs. Package
// config finds all mistakes in a file, and reports the line, column and key of each.
//
// The package does not start anything. It reads no files except the configuration and the token file.
package config
