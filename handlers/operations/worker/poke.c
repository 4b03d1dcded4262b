#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

static bool address(const struct hs_config *cfg, struct sockaddr_un *a)
{
	const char *dir = hs_cfg_str(cfg, HS_S_run_dir);
	int n;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (hs_str_empty(dir))
		return false;
	n = snprintf(a->sun_path, sizeof(a->sun_path), "%s/worker.sock", dir);
	return n > 0 && (size_t)n < sizeof(a->sun_path);
}

/* Another worker of this host listens there. */
static bool taken(int fd, const struct sockaddr_un *a)
{
	bool yes = connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0;
	struct sockaddr none = {.sa_family = AF_UNSPEC};

	(void)!connect(fd, &none, sizeof(none));
	return yes;
}

int poke_open(const struct hs_config *cfg)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a;

	if (fd < 0 || !address(cfg, &a) || taken(fd, &a))
		goto none;
	unlink(a.sun_path);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	hs_log(HS_LOG_WARN, "poke", "socket=%s error=%s", hs_log_quote(a.sun_path),
		hs_log_quote(strerror(errno)));
none:
	if (fd >= 0)
		close(fd);
	return -1;
}

void poke_drain(int fd)
{
	char c[16];

	while (fd >= 0 && recv(fd, c, sizeof(c), MSG_DONTWAIT) >= 0)
		;
}

void poke_close(const struct hs_config *cfg, int fd)
{
	struct sockaddr_un a;

	if (fd < 0)
		return;
	if (address(cfg, &a))
		unlink(a.sun_path);
	close(fd);
}
