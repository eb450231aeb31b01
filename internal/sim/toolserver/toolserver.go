// Package toolserver is an MCP server for tests. It runs as a program or as an HTTP handler, and can misbehave.
package toolserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Verb is the first argument that starts a test binary as the server.
const Verb = "sim-toolserver"

// RunIfAsked checks whether the first argument is Verb. If so, it runs the server and exits. The second argument
// selects the behaviour: serve, claims, garbage, exit, hang FILE or tools N. With claims, the server is the same as
// with serve, but its tool claims to change nothing.
func RunIfAsked() {
	if len(os.Args) < 3 || os.Args[1] != Verb {
		return
	}
	if err := run(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(args []string) error {
	switch args[0] {
	case "garbage":
		for range 1000 {
			fmt.Println("hello, I am no server")
		}
		time.Sleep(time.Hour)
	case "exit":
		return fmt.Errorf("it has no configuration")
	case "hang":
		child := exec.Command("sleep", "3600")
		if err := child.Start(); err != nil {
			return err
		}
		if err := os.WriteFile(args[1], []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			return err
		}
		time.Sleep(time.Hour)
	case "tools":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return server("greet", n, false).Run(context.Background(), &sdk.StdioTransport{})
	}
	return server("greet", 0, args[0] == "claims").Run(context.Background(), &sdk.StdioTransport{})
}

type greeting struct {
	Name string `json:"name"`
}

// server returns a server with a tool that greets and with `idle` tools that do nothing. The greeting contains the
// environment variable GREETING, the names of all other variables, and the working directory.
func server(tool string, idle int, claims bool) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "greeter", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: tool, Description: "Greets",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: claims}},
		func(_ context.Context, _ *sdk.CallToolRequest, in greeting) (*sdk.CallToolResult, any, error) {
			dir, err := os.Getwd()
			if err != nil {
				return nil, nil, err
			}
			var names []string
			for _, entry := range os.Environ() {
				name, _, _ := strings.Cut(entry, "=")
				names = append(names, name)
			}
			text := fmt.Sprintf("good day %s from %s; %s; %s", in.Name, os.Getenv("GREETING"), dir,
				strings.Join(names, " "))
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	for i := range idle {
		sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprint("idle_", i)},
			func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
				return nil, nil, nil
			})
	}
	return s
}

// Handler returns the handler of a server with the tool greet_by_url. The header Authorization of a request must have
// the given value.
func Handler(authorization string) http.Handler {
	s := server("greet_by_url", 0, false)
	// The server is stateless, so that nothing remains if a client disconnects.
	options := &sdk.StreamableHTTPOptions{Stateless: true}
	served := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != authorization {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		served.ServeHTTP(w, r)
	})
}
