#include "reflect.h"

const struct hs_route reflect_routes[] = {
	{
		.method = HS_POST,
		.pattern = "/v1/default/banks/{bank_id}/reflect",
		.fn = reflect_post,
		.body = &hs_reflect_body_shape,
		.flags = HS_R_LONG | HS_R_READ,
		.long_name = "reflect",
	},
	{.pattern = NULL},
};
