package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ductor/internal/nearest"
)

// otherNames maps words that users may type to the subcommands that they mean.
var otherNames = map[string]string{
	"start": "run", "serve": "run", "init": "setup", "configure": "setup", "config": "setup", "login": "setup",
	"list": "ps", "stop": "kill",
	"status": "service status", "logs": "service logs", "install": "service install", "update": "upgrade --check",
	"check": "doctor", "web": "dashboard",
}

// suggestCommand returns an error for an unknown subcommand. The error suggests a subcommand with a similar name.
func suggestCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	other := otherNames
	if cmd.HasParent() {
		other = nil
	}
	near, ok := nearest.Of(args[0], slices.Concat(names, slices.Collect(maps.Keys(other))))
	if meant := other[near]; meant != "" {
		near = meant
	}
	if !ok {
		return fmt.Errorf("%s has no command %q; %s --help lists them", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return fmt.Errorf("%s has no command %q; did you mean %s %s?", cmd.CommandPath(), args[0], cmd.CommandPath(), near)
}

// suggestFlag improves errors about flags. For an unknown flag, it suggests a flag with a similar name. For an invalid
// number, it removes the name of Go's function from the error.
func suggestFlag(cmd *cobra.Command, err error) error {
	if before, _, number := strings.Cut(err.Error(), ": strconv."); number {
		return fmt.Errorf("%s: this is not a whole number", before)
	}
	wrong, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return err
	}
	var names []string
	for _, found := range regexp.MustCompile(`--([a-z][a-z-]+)`).FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, found[1])
	}
	if near, ok := nearest.Of(wrong, names); ok {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
}
