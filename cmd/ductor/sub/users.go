package sub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/users"
)

// Users returns the commands that list, invite, change and remove users.
func Users(from Source) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "users",
		Short: "List users, change their roles and remove them",
		Long: "List users, and change or remove those who joined by a link from /pair. Users in the configuration " +
			"are " +
			"changed there. Changes apply at once, even while ductor runs.",
	}
	cmd.AddCommand(listUsers(from), roleOfUser(from), removeUser(from))
	return cmd
}

func listUsers(from Source) *cobra.Command {
	return withConfig(from.forParts(roster()...), &cobra.Command{
		Use: "list", Short: "List the users with their roles", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, cfg config.Config, _ []string) error {
		db, err := store.OpenReadOnly(cmd.Context(), databaseOf(cfg), store.Options{})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		var joined []orchestrator.JoinedUser
		if err == nil {
			joined, err = db.JoinedUsers(cmd.Context())
			if err = errors.Join(err, db.Close()); err != nil {
				return err
			}
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tROLE\tNAME\tFROM")
		roster := app.RosterOf(cfg)
		for _, id := range cfg.Telegram.AllowedUsers {
			fmt.Fprintf(w, "%d\t%s\t\tthe configuration\n", id, string(roster.RoleOf(orchestrator.PersonID(id))))
		}
		for _, u := range joined {
			if _, ok := roster[u.ID]; !ok {
				fmt.Fprintf(w, "%d\t%s\t%s\tan invitation of %d, %s\n", u.ID, u.Role, strconv.Quote(u.Name), u.By,
					u.Joined.Local().Format(time.DateOnly))
			}
		}
		return w.Flush()
	})
}

// roster returns the parts of the configuration that a command about users reads. The part "storage" contains the path
// of the database, because users who joined by an invitation are only in the database.
func roster() []string { return []string{"storage", "telegram.allowed_users", "users"} }

func databaseOf(cfg config.Config) string { return filepath.Join(cfg.Storage.Dir, app.DatabaseFile) }

func roleOfUser(from Source) *cobra.Command {
	return withConfig(from.forParts(roster()...), &cobra.Command{
		Use: "role ID ROLE", Short: "Change the role of a user who joined: owner, user or viewer",
		Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		role, ok := orchestrator.ParseUserRole(args[1])
		if !ok {
			return fmt.Errorf("%q is not a role; use owner, user or viewer", args[1])
		}
		return changeUser(cmd, cfg, args[0], "has the role "+string(role),
			func(ctx context.Context, d *users.Directory, by orchestrator.Press, id orchestrator.PersonID) error {
				return d.SetRole(ctx, by, id, role)
			})
	})
}

func removeUser(from Source) *cobra.Command {
	return withConfig(from.forParts(roster()...), &cobra.Command{
		Use: "remove ID", Short: "Remove a user who joined, and pause the jobs of their private chat",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, cfg config.Config, args []string) error {
		return changeUser(cmd, cfg, args[0], "is removed",
			func(ctx context.Context, d *users.Directory, by orchestrator.Press, id orchestrator.PersonID) error {
				return d.Remove(ctx, by, id)
			})
	})
}

// changeUser changes a user in the database. ductor may be running. If the database does not exist or has an old
// format, changeUser returns an error.
func changeUser(cmd *cobra.Command, cfg config.Config, arg, done string,
	change func(context.Context, *users.Directory, orchestrator.Press, orchestrator.PersonID) error,
) error {
	id, err := strconv.ParseInt(strings.TrimSpace(arg), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not the id of a user; ductor users list shows them", arg)
	}
	ctx := cmd.Context()
	current, err := store.OpenReadOnly(ctx, databaseOf(cfg), store.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no user has joined: ductor has not run with this configuration yet")
	}
	if err == nil {
		err = current.Close()
	}
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, databaseOf(cfg), store.Options{})
	if err != nil {
		return err
	}
	directory, err := users.Open(ctx, users.Options{Store: db, Configured: func() orchestrator.Roster {
		return app.RosterOf(cfg)
	}, Now: time.Now})
	if err == nil {
		err = change(ctx, directory, orchestrator.Press{Role: orchestrator.RoleOwner}, orchestrator.PersonID(id))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("user %d: %w", id, err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d %s\n", id, done)
	return err
}
