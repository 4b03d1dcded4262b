#include "config/settings.h"

#include <string.h>

const struct hs_setting hs_settings[HS_S__MAX] = {
#define S(name, type, def, scope, flags, min, max, choices, help)                                  \
	[HS_S_##name] = {#name, type, def, scope, flags, min, max, choices, help},
#include "config/settings.def"
#undef S
};

int hs_setting_find(const char *name)
{
	for (int i = 0; i < HS_S__MAX; i++)
		if (strcmp(hs_settings[i].name, name) == 0)
			return i;
	return -1;
}
