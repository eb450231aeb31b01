// Package config reads config.toml. The packages that use settings declare them as structs. Tags define the key, the
// default, the check of the value and the moment from which a change applies. Config nests these structs. The package
// finds all mistakes of a file at once and names each by line, column and key.
//
// The package does NOT start anything. It reads no files except the configuration and the token's own file.
package config
