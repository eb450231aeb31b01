package service_test

import (
	"testing"

	"ductor/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
