package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// key is a digest of what binds a process: its command line, its environment and the directory it works in, from
// where agents read settings of a project. Requests with the same key share a process.
func (p *Provider) key(req cli.Request) string {
	all, err := json.Marshal([]any{p.opts.Path, p.argv(req), p.env(req), req.Dir})
	if err != nil { // strings can always be encoded
		return ""
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}

// settings are what binds a session: a request with others needs another session.
type settings struct {
	key  string
	dirs []string
	mcp  string
}

func (p *Provider) settingsOf(req cli.Request) settings {
	return settings{key: p.key(req), dirs: req.AddDirs, mcp: req.MCPConfig}
}

func (s settings) equal(o settings) bool {
	return s.key == o.key && s.mcp == o.mcp && slices.Equal(s.dirs, o.dirs)
}

func checkDirs(req cli.Request) error {
	for _, dir := range append([]string{req.Dir}, req.AddDirs...) {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("the directory %q is no absolute path", dir)
		}
	}
	return nil
}

// mcpServers reads a configuration of MCP servers: the protocol's own list, or the map by name that other
// agents have; as JSON, or as the path of a file with it.
func mcpServers(config string) ([]json.RawMessage, error) {
	servers := []json.RawMessage{}
	if strings.TrimSpace(config) == "" {
		return servers, nil
	}
	raw := []byte(config)
	if filepath.IsAbs(config) {
		var err error
		if raw, err = os.ReadFile(config); err != nil {
			return nil, fmt.Errorf("read the MCP configuration: %w", err)
		}
	}
	if json.Unmarshal(raw, &servers) == nil {
		return servers, nil
	}
	var named struct {
		Servers map[string]mcpServer `json:"mcpServers"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return nil, fmt.Errorf("read the MCP configuration: %w", err)
	}
	if len(named.Servers) == 0 {
		return nil, errors.New("the MCP configuration names no server")
	}
	names := make([]string, 0, len(named.Servers))
	for name := range named.Servers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		one, err := named.Servers[name].protocol(name)
		if err != nil {
			return nil, err
		}
		servers = append(servers, one)
	}
	return servers, nil
}

// mcpServer is one server as most agents have it in their settings.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func pairs(m map[string]string) []pair {
	list := []pair{}
	for name, value := range m {
		list = append(list, pair{name, value})
	}
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// protocol is the server as the protocol has it.
func (m mcpServer) protocol(name string) (json.RawMessage, error) {
	switch {
	case m.Command != "":
		args := m.Args
		if args == nil {
			args = []string{}
		}
		return json.Marshal(map[string]any{"name": name, "command": m.Command, "args": args, "env": pairs(m.Env)})
	case m.URL != "":
		kind := "http"
		if m.Type == "sse" {
			kind = "sse"
		}
		return json.Marshal(map[string]any{"type": kind, "name": name, "url": m.URL, "headers": pairs(m.Headers)})
	}
	return nil, fmt.Errorf("the MCP server %q has neither command nor url", name)
}
