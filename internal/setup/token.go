package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/bot/tgapi"
	"ductor/internal/config"
	"ductor/internal/secrets"
)

// maxTokens is the number of tokens that the setup tries before it gives up.
const maxTokens = 3

func (s *setup) chooseToken(ctx context.Context) error {
	had := s.cfg.Telegram.Token
	for try := 1; ; try++ {
		if err := s.askToken(ctx, had); err != nil {
			return err
		}
		err := s.connect(ctx)
		if err == nil {
			break
		}
		if !tgapi.TokenRefused(err) {
			return err
		}
		s.Say("Telegram does not know this token. @BotFather shows it: /mybots, the bot, API Token.")
		if s.given.Token != "" || try == maxTokens {
			return errors.New("there is no token that Telegram knows; nothing was written")
		}
	}
	s.Say("The bot is @%s.", s.bot)
	if s.cfg.Telegram.Token != had {
		if s.cfg.Telegram.TokenFile != "" {
			return fmt.Errorf("put the token into %s, which telegram.token_file names, or delete that key",
				s.cfg.Telegram.TokenFile)
		}
		s.addChange("telegram", "token", s.cfg.Telegram.Token.Reveal(),
			"The bot's token from @BotFather. Keep it private.")
	}
	return nil
}

func (s *setup) askToken(ctx context.Context, had secrets.Value) error {
	if s.given.Token != "" {
		s.cfg.Telegram.Token = s.given.Token
		return nil
	}
	question := "The bot's token from @BotFather (it is not shown)"
	if had == "" && !s.given.Unattended {
		s.Say("The token: open https://t.me/BotFather on your phone, send /newbot, choose two names, and copy the token from its answer.")
	}
	if had != "" {
		question = "Another token, or Enter to keep the current one"
	}
	token, err := s.Secret(ctx, question)
	if err != nil {
		return err
	}
	if token = secrets.Value(strings.TrimSpace(token.Reveal())); token == "" {
		token = had
	}
	if token == "" {
		return errors.New("there is no token; write /newbot to @BotFather in Telegram, and start again with the token that it gives you: " +
			"type it when asked, or set " + config.TokenVariable)
	}
	s.cfg.Telegram.Token = token
	return nil
}

// connect calls getMe until Telegram answers. Between two attempts the owner can fix the network, or enter a proxy. It
// returns an error if ctx ends or Telegram rejects the token.
func (s *setup) connect(ctx context.Context) error {
	for {
		err := s.getMe(ctx)
		if err == nil || tgapi.TokenRefused(err) || ctx.Err() != nil {
			return err
		}
		s.Say("%s", describeFailure(err))
		if s.given.Unattended {
			return errors.New("Telegram cannot be reached; nothing was written")
		}
		proxy, err := s.Ask(ctx, "Enter tries again; or name a proxy, such as socks5://host:1080", "try again")
		if err != nil {
			return err
		}
		if strings.Contains(proxy, "://") {
			s.setProxy(secrets.Value(proxy))
		}
	}
}

func (s *setup) setProxy(address secrets.Value) {
	s.cfg.Telegram.Proxy = address
	s.changes = slices.DeleteFunc(s.changes,
		func(c config.Change) bool { return c.Table == "telegram" && c.Key == "proxy" })
	s.addChange("telegram", "proxy", address.Reveal(), "The way to Telegram.")
}

func describeFailure(err error) string {
	var lookup *net.DNSError
	var answer *tgapi.AnswerError
	switch {
	case errors.As(err, &answer):
		return fmt.Sprintf("The server does not answer as Telegram does: %d %s.", answer.Code, answer.Description)
	case errors.As(err, &lookup):
		return "Telegram cannot be reached: this machine does not find " + lookup.Name +
			". Is it online, or behind a proxy?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Telegram cannot be reached: the connection is refused. Does the proxy run, if there is one?"
	case errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err):
		return "Telegram cannot be reached: there is no answer. Is this machine online, or behind a proxy?"
	default:
		return fmt.Sprintf("Telegram cannot be reached (%v).", err)
	}
}

const reachTimeout = 15 * time.Second

func (s *setup) getMe(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if s.api, err = s.world.Connect(s.cfg); err != nil {
		return err
	}
	var me struct {
		Username string `json:"username"`
	}
	err = s.api.Call(ctx, "getMe", struct{}{}, &me)
	s.bot = me.Username
	return err
}
