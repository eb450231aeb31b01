// Package config reads config.toml. Each package declares its own settings as a struct. Tags of a field define the key,
// the default, the check of the value, and when a change applies. Config nests these structs. The package finds all
// mistakes in a file, and names the line, column and key of each.
//
// The package does NOT start anything. It reads no files except the configuration and the file with the token.
package config
