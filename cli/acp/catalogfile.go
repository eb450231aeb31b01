package acp

import _ "embed"

//go:embed catalog.toml
var catalogFile string

// CatalogFile returns the data of the agents that ductor knows. Package catalog parses it.
func CatalogFile() string { return catalogFile }
